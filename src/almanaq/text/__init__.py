"""Text as words: cut, stemmed, compared; one place for whoever reads questions, documents or tables."""
