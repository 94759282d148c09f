# Which calls may be made from inside of helpers: inner_calls.py compares what is said
# behind "#" at each of them with what --dump=code finds. (What the same calls are in code
# for shared libraries: inner_calls_pic.s.)
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
        movq    32(%rsp), %rax
        call    undefined@PLT           # not: nobody knows the callee
        addq    $32, %rsp
        .cfi_def_cfa_offset 16
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        end     own_frame

        begin   over_return             # begins in its frame, and ends above it
        movups  -16(%rsp), %xmm0
        movq    -4(%rsp), %rax
        ret
        end     over_return

        begin   bit_string              # the bit may be anywhere
        btq     %rcx, -8(%rsp)
        ret
        end     bit_string

        begin   frame_kept              # who reads it again has a pointer
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        movq    %rbp, -8(%rbp)
        movq    -8(%rbp), %rax
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     frame_kept

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

        begin   pointer                 # to what, in the end?
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        leaq    8(%rsp), %rdi
        call    undefined@PLT           # not: nobody knows the callee
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     pointer

        begin   argument_indexed        # v[i - 3], v among the arguments
        movq    -16(%rsp,%rdi,8), %rax
        ret
        end     argument_indexed

        begin   argument_frame_indexed
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        movq    -8(%rbp,%rdi,8), %rax
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     argument_frame_indexed

        begin   entered
        enter   $16, $0
        .cfi_def_cfa 6, 16
        .cfi_offset 6, -16
        leave
        .cfi_def_cfa 7, 8
        ret
        end     entered

        begin   realigned               # as -mstackrealign does
        leaq    8(%rsp), %r10
        .cfi_def_cfa 10, 0
        andq    $-32, %rsp
        pushq   -8(%r10)
        pushq   %rbp
        movq    %rsp, %rbp
        .cfi_escape 0x10,0x6,0x2,0x76,0
        pushq   %r10
        .cfi_escape 0xf,0x3,0x76,0x78,0x6
        popq    %r10
        .cfi_def_cfa 10, 0
        popq    %rbp
        leaq    -8(%r10), %rsp
        .cfi_def_cfa 7, 8
        ret
        end     realigned

        begin   switches                # it could as well be a tail call
        movl    %edi, %edi
        leaq    table(%rip), %rdx
        movslq  (%rdx,%rdi,4), %rax
        addq    %rdx, %rax
        jmp     *%rax
.Lcase0:
        ret
        end     switches

        begin   hooked                  # __fentry__ by another name
        call    undefined@PLT           # not: nobody knows the callee
        ret
        end     hooked

        begin   hooked_in_frame
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        call    mcount@PLT              # not: nobody knows the callee
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     hooked_in_frame

        begin   returns_deep            # by nobody's convention
        pushq   %rax
        .cfi_def_cfa_offset 16
        ret
        end     returns_deep

        begin   falls_through
        movl    %edi, %eax
        end     falls_through
        begin   fallen_into
        movq    8(%rsp), %rax
        ret
        end     fallen_into

        begin   aligned                 # to 32, for all that its calls tell
        ret
        end     aligned

        begin   unaligned
        ret
        end     unaligned

        begin   lightly                 # as callees that the compiler knows well
        ret
        end     lightly

        begin   hooked_by_us
        call    return_far              # not: who looks far up
        ret
        end     hooked_by_us

        begin   return_far
        movq    8(%rsp), %rax
        ret
        end     return_far

        begin   light_calls
        call    lightly                 # inner
        ret
        end     light_calls

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
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    nothing@PLT             # inner
        call    own_frame@PLT           # inner
        call    over_return@PLT         # not: it reads over its return address
        call    bit_string@PLT          # not: it reads anywhere
        call    frame_kept@PLT          # not: it has a pointer to its frame
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
        call    tail_undefined@PLT      # not: who is that?
        call    tail_indirect@PLT       # not: the same
        call    pointer@PLT             # not: it makes a pointer
        call    argument_indexed@PLT    # not: it reads an argument
        call    argument_frame_indexed@PLT # not: the same
        call    entered@PLT             # not: rare
        call    realigned@PLT           # not: it makes a pointer to its arguments
        call    switches@PLT            # not: it jumps who knows where
        call    hooked@PLT              # not: what it calls may look at who has called it
        call    hooked_in_frame@PLT     # not: the same
        call    returns_deep@PLT        # not: it returns to nobody
        call    falls_through@PLT       # not: it goes on where an argument is read
        call    fallen_into@PLT         # not: it reads an argument
        call    unaligned@PLT           # inner
        call    hooked_by_us@PLT        # not: it calls who looks at who has called it
        call    light_calls@PLT         # inner
        call    tail_twice@PLT          # not: it returns twice
        call    cold_argument@PLT       # not: its other part reads one
        call    cold_nothing@PLT        # inner
        call    helper_argument@PLT     # not: what it calls reads one
        call    helper_own@PLT          # inner
        call    no_rows@PLT             # not: no rows say where SP is
        call    chosen@PLT              # not: another one is run
        call    _Z6inlinev@PLT          # not: another copy may be run
        call    *%rax                   # not: nobody knows the callee
        call    *nothing@GOTPCREL(%rip) # not: through memory
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     callers

# --- who calls ---
        begin   deeper                  # SP may be a multiple of 32 here
        subq    $24, %rsp
        .cfi_def_cfa_offset 32
        movl    $7, (%rsp)
        call    nothing@PLT             # inner
        call    aligned@PLT             # not: it may want that
        call    unaligned@PLT           # inner
        addq    $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end     deeper

        begin   by_frame
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register 6
        call    nothing@PLT             # inner
        call    aligned@PLT             # not: who knows where SP is
        popq    %rbp
        .cfi_def_cfa 7, 8
        ret
        end     by_frame

        begin   direct                  # for executables only
        movq    undefined_data(%rip), %rax
        ret
        end     direct

        .section .rodata
        .balign 4
table:  .long   .Lcase0-table
        .section .note.GNU-stack,"",@progbits
