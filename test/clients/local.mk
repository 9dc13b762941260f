# Programs that others wrote, unchanged, with hetcoll: not a part of make check, because they come from PyPI
# and take minutes.
EXTRA_DIST += test/clients/horovod.sh test/clients/horovod_calls.py \
	test/clients/mpi4py.sh test/clients/mpi4py_tests.py test/clients/device_array.py \
	test/clients/get_ucx.sh test/clients/ucx.sh

if WITH_OMPI
check-clients:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) test/mpi/device_allreduce test/mpi/other_memory test/unit/pointer_cache_test
	@status=0; HETCOLL_BUILDDIR='$(abs_builddir)'; export HETCOLL_BUILDDIR; \
	$(srcdir)/test/clients/mpi4py.sh || status=1; \
	$(srcdir)/test/clients/ucx.sh || status=1; \
	{ $(SHELL) $(srcdir)/examples/horovod/setup.sh horovod && $(srcdir)/test/clients/horovod.sh; } || status=1; \
	exit $$status
endif
