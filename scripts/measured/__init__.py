"""The measured tables of README.md and docs/, a module for each area of results."""
