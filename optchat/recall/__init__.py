"""What the model is shown: the view, and what it opens of it."""
