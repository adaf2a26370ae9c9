"""Generated SQL, run apart from everything else, and compared with the gold SQL."""
