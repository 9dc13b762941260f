/* The fatbins that nvcc makes of reduce.cu and fixed_point.cu, as data of the component. The paths are
 * relative to the directory in which make runs. */
    .section .rodata
    .balign 64
    .globl hetcoll_kernel_image
    .hidden hetcoll_kernel_image
    .type hetcoll_kernel_image, %object
hetcoll_kernel_image:
    .incbin "cuda_kernels/reduce.fatbin"
    .size hetcoll_kernel_image, . - hetcoll_kernel_image
    .balign 64
    .globl hetcoll_fixed_point_image
    .hidden hetcoll_fixed_point_image
    .type hetcoll_fixed_point_image, %object
hetcoll_fixed_point_image:
    .incbin "cuda_kernels/fixed_point.fatbin"
    .size hetcoll_fixed_point_image, . - hetcoll_fixed_point_image
    .section .note.GNU-stack, "", %progbits
