"""SemBench's Movie scenario: ten queries over reviews, answered with SUQL."""
