"""The business: what an interview backend asks of a model, and how the answers are read."""
