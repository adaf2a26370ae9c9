"""What is true of the bundled sample: its reviews as a perfect reader reads them, and twelve questions."""
