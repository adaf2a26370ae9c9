"""One page that shows runs: tables, curves, slices, failures; HTML that needs nothing else, or Markdown."""
