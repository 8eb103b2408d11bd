"""One optimiser a file; the file name is its name. `kontrast.optim.optimizer` makes them."""
