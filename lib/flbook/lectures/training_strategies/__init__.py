"""Training strategies: same data, same network, another rule."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = ("momentum",)
