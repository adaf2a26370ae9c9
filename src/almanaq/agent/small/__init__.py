"""Questions for a small language model: short prompts over what the words of the question mean, mended by rule."""
