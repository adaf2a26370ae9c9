"""HybridQA as the SUQL paper runs it (section 6.1): tables with linked passages, asked in SUQL."""
