"""What is shown of the log: lines, the view that folds them, the text that is rendered."""
