# What the stages of mo-link make of a little of everything: golden.py compares.
        .text
        .type   first, @function
        .globl  first
first:                                  # a plain frame, a payload with two references
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset 3, -16
        subq    $16, %rsp
        .cfi_def_cfa_offset 32
        movl    %edi, %ebx
        leaq    .Ltext(%rip), %rdi
        movl    %ebx, 12(%rsp)
        call    puts@PLT
        leal    3(%rbx), %edi
        xorl    12(%rsp), %edi
        subl    $7, %edi
        call    other@PLT
        addl    %ebx, %eax
        addq    $16, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   first, .-first

        .type   second, @function
        .globl  second
second:                                 # the same tail
        .cfi_startproc
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset 3, -16
        subq    $16, %rsp
        .cfi_def_cfa_offset 32
        movl    %edi, %ebx
        testl   %edi, %edi
        je      1f
        leaq    .Ltext(%rip), %rdi
        movl    %ebx, 12(%rsp)
        call    puts@PLT
        leal    3(%rbx), %edi
        xorl    12(%rsp), %edi
        subl    $7, %edi
        call    other@PLT
1:      addl    %ebx, %eax
        addq    $16, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   second, .-second

        .type   leaf, @function
leaf:                                   # keeps something below the stack pointer
        .cfi_startproc
        movl    %edi, -4(%rsp)
        leal    3(%rdi,%rdi,4), %eax
        xorl    -4(%rsp), %eax
        imull   $1000, %eax, %eax
        ret
        .cfi_endproc
        .size   leaf, .-leaf

        .type   switches, @function
        .globl  switches
switches:                               # a jump table of distances
        .cfi_startproc
        cmpl    $3, %edi
        ja      .Lother
        movl    %edi, %edi
        leaq    .Ltable(%rip), %rdx
        movslq  (%rdx,%rdi,4), %rax
        addq    %rdx, %rax
        jmp     *%rax
.Lone:  movl    $11, %eax
        ret
.Ltwo:  movl    $22, %edi
        jmp     leaf
.Lother:
        xorl    %eax, %eax
        ret
        .cfi_endproc
        .size   switches, .-switches

        .type   strange, @function
strange:                                # sealed: nobody knows where this goes
        .cfi_startproc
        leaq    2f(%rip), %rax
        leaq    (%rax,%rdi,8), %rax
        jmp     *%rax
        .p2align 3
2:      movl    $1, %eax
        ret
        .p2align 3
        movl    $2, %eax
        ret
        .cfi_endproc
        .size   strange, .-strange

        .section .rodata
        .p2align 2
.Ltable:
        .long   .Lone - .Ltable, .Ltwo - .Ltable, .Lother - .Ltable, .Lone - .Ltable
        .section .rodata.str1.1, "aMS", @progbits, 1
.Ltext: .string "text"
        .section .note.GNU-stack, "", @progbits
