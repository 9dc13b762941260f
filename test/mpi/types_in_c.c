#include "test/mpi/types_in_c.h"

#include "include/hetcoll_types.h"

int types_in_c_create(struct hetcoll_types *types) { return hetcoll_types_create(types); }

int types_in_c_free(struct hetcoll_types *types) { return hetcoll_types_free(types); }

MPI_User_function *types_in_c_function(int i)
{
    MPI_User_function *const functions[] = {
        hetcoll_types_float16_sum_,     hetcoll_types_float16_prod_,
        hetcoll_types_float16_min_,     hetcoll_types_float16_max_,
        hetcoll_types_bfloat16_sum_,    hetcoll_types_bfloat16_prod_,
        hetcoll_types_bfloat16_min_,    hetcoll_types_bfloat16_max_,
        hetcoll_types_float8_e4m3_sum_, hetcoll_types_float8_e4m3_min_,
        hetcoll_types_float8_e4m3_max_, hetcoll_types_float8_e5m2_sum_,
        hetcoll_types_float8_e5m2_min_, hetcoll_types_float8_e5m2_max_};
    return functions[i];
}
