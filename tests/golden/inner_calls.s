# Which calls may be made from inside of helpers: inner_calls.py compares what is said
# behind "#" at each of them with what --dump=code finds.
        .macro  begin name, linkage=globl
        .type   \name, @function
        .\linkage \name
\name:
        .cfi_startproc
        .endm
        .macro  end name
        .cfi_endproc
        .size   \name, .-\name
        .endm

# --- callees ---
        .text
        begin   nothing
        leal    (%rdi,%rdi), %eax
        ret
        end     nothing

        begin   own_frame               # all that it addresses is its own
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset 3, -16
        subq    $32, %rsp
        .cfi_def_cfa_offset 48
        movl    %edi, 28(%rsp)
        movq    39(%rsp), %rax
        leaq    8(%rsp), %rdi
        call    undefined@PLT           # not: nobody knows the callee
        addq    $32, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end     own_frame

        begin   argument
        movq    8(%rsp), %rax
        ret
        end     argument

        begin   argument_deep
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        movq    32(%rsp), %rax
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     argument_deep

        begin   argument_address
        leaq    8(%rsp), %rax
        ret
        end     argument_address

        begin   argument_frame          # through a frame register
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        movq    16(%rbp), %rax
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     argument_frame

        begin   argument_frame_address
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        leaq    16(%rbp), %rax
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     argument_frame_address

        begin   argument_frame_pushed
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        pushq   16(%rbp)
        popq    %rax
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     argument_frame_pushed

        begin   frame                   # a frame register and nothing above it
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        movq    %rdi, -8(%rbp)
        movq    -8(%rbp), %rax
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     frame

        begin   argument_pushed
        pushq   8(%rsp)
        .cfi_def_cfa_offset 16
        popq    %rax
        .cfi_def_cfa_offset 8
        ret
        end     argument_pushed

        begin   return_address
        movq    (%rsp), %rax
        ret
        end     return_address

        begin   return_popped           # as a setjmp of one's own may do
        popq    %rcx
        .cfi_def_cfa_offset 0
        jmp     *%rcx
        end     return_popped

        begin   stack_stored            # the same
        movq    %rsp, (%rdi)
        ret
        end     stack_stored

        begin   pops_arguments
        ret     $8
        end     pops_arguments

        begin   late_row                # no row says that SP is back
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        movl    %edi, %eax
        addq    $24, %rsp
        movq    8(%rsp), %rdx
        ret
        end     late_row

        begin   weak_one, weak
        ret
        end     weak_one

        begin   tail_known
        jmp     nothing@PLT
        end     tail_known

        begin   tail_argument
        jmp     argument@PLT
        end     tail_argument

        begin   tail_undefined          # finds what this one has been given
        jmp     undefined@PLT
        end     tail_undefined

        begin   tail_indirect
        movq    8(%rdi), %rax
        jmp     *48(%rax)
        end     tail_indirect

        begin   tail_twice
        jmp     _setjmp@PLT
        end     tail_twice

        begin   cold_argument
        testl   %edi, %edi
        jne     cold_argument.cold
        ret
        end     cold_argument
        .section .text.unlikely,"ax",@progbits
        begin   cold_argument.cold, local
        movq    8(%rsp), %rax
        ret
        end     cold_argument.cold

        .text
        begin   cold_nothing
        testl   %edi, %edi
        jne     cold_nothing.cold
1:      ret
        end     cold_nothing
        .section .text.unlikely,"ax",@progbits
        begin   cold_nothing.cold, local
        movl    $1, %eax
        jmp     1b
        end     cold_nothing.cold

        .text
        begin   OUTLINED_FUNCTION_0, local      # its callers' 8(%rsp)
        movq    16(%rsp), %rax
        ret
        end     OUTLINED_FUNCTION_0

        begin   helper_argument         # 8(%rsp) is an argument here …
        call    OUTLINED_FUNCTION_0     # not: a helper
        ret
        end     helper_argument

        begin   helper_own              # … and a variable here
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        call    OUTLINED_FUNCTION_0     # not: a helper
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     helper_own

        .type   no_rows, @function
        .globl  no_rows
no_rows:
        ret
        .size   no_rows, .-no_rows

        .type   chosen, @gnu_indirect_function
        .globl  chosen
chosen:
        .cfi_startproc
        leaq    nothing(%rip), %rax
        ret
        .cfi_endproc
        .size   chosen, .-chosen

        .section .text._Z6inlinev,"axG",@progbits,_Z6inlinev,comdat
        begin   _Z6inlinev, weak
        ret
        end     _Z6inlinev

# --- what is called ---
        .text
        begin   callers
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        call    nothing@PLT             # inner
        call    own_frame@PLT           # inner
        call    argument@PLT            # not: it reads an argument
        call    argument_deep@PLT       # not: it reads an argument
        call    argument_address@PLT    # not: it makes a pointer to one
        call    argument_frame@PLT      # not: it reads an argument
        call    argument_frame_address@PLT # not: it makes a pointer to one
        call    argument_frame_pushed@PLT # not: it reads an argument
        call    frame@PLT               # inner
        call    argument_pushed@PLT     # not: it reads an argument
        call    return_address@PLT      # not: it looks at its return address
        call    return_popped@PLT       # not: the same
        call    stack_stored@PLT        # not: it keeps SP
        call    pops_arguments@PLT      # not: it pops what there is not
        call    late_row@PLT            # not: it reads an argument
        call    weak_one@PLT            # not: another one may be run
        call    undefined@PLT           # not: nobody knows the callee
        call    _setjmp@PLT             # not: it returns twice
        call    tail_known@PLT          # inner
        call    tail_argument@PLT       # not: it goes on to who reads one
        call    tail_undefined@PLT      # inner
        call    tail_indirect@PLT       # inner
        call    tail_twice@PLT          # not: it returns twice
        call    cold_argument@PLT       # not: its other part reads one
        call    cold_nothing@PLT        # inner
        call    helper_argument@PLT     # not: what it calls reads one
        call    helper_own@PLT          # inner
        call    no_rows@PLT             # not: no rows say where SP is
        call    chosen@PLT              # not: another one is run
        call    _Z6inlinev@PLT          # inner
        call    *%rax                   # not: nobody knows the callee
        call    *nothing@GOTPCREL(%rip) # not: through memory
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     callers

# --- who calls ---
        begin   stores
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        movl    %edi, 8(%rsp)
        call    nothing@PLT             # inner
        movl    $7, (%rsp)
        call    nothing@PLT             # not: that may be an argument
        call    nothing@PLT             # inner
        movups  %xmm0, (%rsp)
        testl   %eax, %eax
        je      1f
        movl    %eax, 8(%rsp)
1:      call    nothing@PLT             # not: that may be an argument
        movl    $7, (%rsp)
        call    memcpy@PLT              # not: nobody knows the callee
        call    nothing@PLT             # not: memcpy may have made another one
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     stores

        begin   loops                   # what is stored on one way round
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
1:      call    nothing@PLT             # not: that may be an argument
        movl    $7, (%rsp)
        testl   %eax, %eax
        jne     1b
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     loops

        begin   reads                   # a variable of its own
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        movl    %edi, (%rsp)
        call    nothing@PLT             # inner
        movl    (%rsp), %eax
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     reads

        begin   points
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        call    nothing@PLT             # not: an argument may be stored so
        movq    %rsp, %rdi
        call    nothing@PLT             # not: the same
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     points

        begin   pushes
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    nothing@PLT             # inner
        pushq   %rdi
        .cfi_def_cfa_offset 24
        pushq   %rsi
        .cfi_def_cfa_offset 32
        call    nothing@PLT             # not: two arguments
        addq    $16, %rsp
        .cfi_def_cfa_offset 16
        call    nothing@PLT             # inner
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     pushes

        begin   saves                   # a register lies where arguments would
        pushq   %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset 3, -16
        call    nothing@PLT             # inner
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end     saves

        begin   by_frame
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        call    nothing@PLT             # not: who knows where SP is
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     by_frame

        begin   OUTLINED_FUNCTION_1, local      # its callers' (%rsp)
        movl    $7, 8(%rsp)
        ret
        end     OUTLINED_FUNCTION_1

        begin   helped
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        call    OUTLINED_FUNCTION_1     # not: a helper
        call    nothing@PLT             # not: that may be an argument
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     helped

        begin   parts
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        testl   %edi, %edi
        jne     parts.cold
1:      call    nothing@PLT             # not: its other part stores
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     parts
        .section .text.unlikely,"ax",@progbits
        begin   parts.cold, local
        .cfi_def_cfa_offset 32
        movl    $7, (%rsp)
        jmp     1b
        end     parts.cold
        .section .note.GNU-stack,"",@progbits
