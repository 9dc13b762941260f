/* The fatbin that nvcc makes of reduce.cu, as data of the component. The path is relative to the
 * directory in which make runs. */
    .section .rodata
    .balign 64
    .globl hetcoll_kernel_image
    .hidden hetcoll_kernel_image
    .type hetcoll_kernel_image, %object
hetcoll_kernel_image:
    .incbin "cuda_kernels/reduce.fatbin"
    .size hetcoll_kernel_image, . - hetcoll_kernel_image
    .section .note.GNU-stack, "", %progbits
