# The emulated GPU.
