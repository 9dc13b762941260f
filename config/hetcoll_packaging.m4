# What releases need.
AC_DEFUN([HETCOLL_PACKAGING],
[# make dist: names sorted, no owners, the modes of any umask, and one time for all.
 am__tar='LC_ALL=C tar --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go-w,a+rX --mtime=@$(release_time) -chf - "$$tardir"'])
