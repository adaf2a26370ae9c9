"""One file for each system, run by the Python that has the system: it imports nothing of almanaq but for ours."""
