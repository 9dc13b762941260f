# Installed: types and operations for half, bfloat16 and 8-bit floats, and calls in the order of a stream, under any MPI.
include_HEADERS = include/hetcoll_types.h include/hetcoll_stream.h
nodist_include_HEADERS = include/hetcoll_version.h
