"""The papers' tables and figures, and what chose our constants; `run` makes them."""
