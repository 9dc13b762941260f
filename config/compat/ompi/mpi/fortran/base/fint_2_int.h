/* Stands in for a header that ompi/op/op.h includes and no Open MPI release installs. On the
 * include path by -idirafter: an installed one wins. MPI_Fint is an int wherever hetcoll is built.
 */
#ifndef HETCOLL_COMPAT_FINT_2_INT_H
#define HETCOLL_COMPAT_FINT_2_INT_H

#ifndef OMPI_INT_2_FINT
#define OMPI_INT_2_FINT(value) ((MPI_Fint)(value))
#define OMPI_FINT_2_INT(value) ((int)(value))
#endif

#endif
