"""Training strategies: same data, same network, another rule."""
