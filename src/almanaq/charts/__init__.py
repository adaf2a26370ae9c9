"""Charts of results: which one fits, as Vega-Lite, and as text."""
