"""From how many elements on an array is worth more than one thread, or more than one call."""

LARGE = 1 << 18  # elements from which an operation is worth splitting: below, waking a thread costs more than it saves
MIDDLE = 1 << 13  # elements from which one compiled loop for a function of several steps is worth looking for
PLENTY = 1 << 17  # the same for a function that is one of NumPy's
MANY = 1 << 19  # elements from which one of NumPy's functions may be worth several threads

# Elements that work of several steps is given at once, measured with normalisation, attention and gelu: they lie in the
# cache that the cores share. With fewer, threads spend their time handing the interpreter lock over.
BLOCK = 1 << 17
PIECE = 1 << 16  # the same for one thread, in the cache of its core
SHARED = 1 << 15  # elements from which a compiled loop is worth several threads
