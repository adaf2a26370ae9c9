"""The generator of the bundled sample: invented restaurants, and reviews that express known attributes."""
