# Which calls may be made from inside of helpers in code for shared libraries, where other
# definitions may be run than those of the object: see inner_calls.s.
        .macro  function name, visibility, linkage=globl
        .type   \name, @function
        .\linkage \name
        .ifnc   \visibility,default
        .\visibility \name
        .endif
\name:
        .cfi_startproc
        ret
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .text
        function default_one, default
        function hidden_one, hidden
        function protected_one, protected
        function internal_one, internal
        function weak_hidden, hidden, weak
        function local_one, default, local

        .globl  callers
        .type   callers, @function
callers:
        .cfi_startproc
        subq    $8, %rsp
        .cfi_def_cfa_offset 16
        call    default_one@PLT         # not: another one may be run
        call    hidden_one              # inner
        call    protected_one           # inner
        call    internal_one            # inner
        call    weak_hidden             # not: it gives way to another one
        call    local_one               # inner
        movq    default_data@GOTPCREL(%rip), %rax
        movq    hidden_data(%rip), %rax
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   callers, .-callers
        .hidden hidden_data
        .section .note.GNU-stack,"",@progbits
