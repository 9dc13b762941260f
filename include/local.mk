# Installed: types and operations for half and bfloat16, under any MPI.
include_HEADERS = include/hetcoll_types.h
