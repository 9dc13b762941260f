# Programs that others wrote, unchanged, with hetcoll: not a part of make check, because they come from PyPI
# and take minutes.
EXTRA_DIST += test/clients/mpi4py.sh test/clients/mpi4py_tests.py test/clients/device_array.py

check-clients: all
	HETCOLL_BUILDDIR='$(abs_builddir)' $(srcdir)/test/clients/mpi4py.sh
