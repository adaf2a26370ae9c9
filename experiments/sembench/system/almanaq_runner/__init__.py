"""almanaq as a system of SemBench's Movie scenario."""
