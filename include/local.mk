# Installed: types and operations for half and bfloat16, and calls in the order of a stream, under any MPI.
include_HEADERS = include/hetcoll_types.h include/hetcoll_stream.h
