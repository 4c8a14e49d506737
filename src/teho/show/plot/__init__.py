"""Pictures as SVG or PNG, drawn by matplotlib."""
