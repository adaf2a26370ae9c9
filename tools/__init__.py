"""What makes files of the repository; nothing here is installed."""
