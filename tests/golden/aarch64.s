// What the stages of mo-link make of a little of everything: golden.py compares.
        .text
        .p2align 2
        .type   first, %function
        .globl  first
first:                                  // a plain frame, a payload with two references
        .cfi_startproc
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        mov     x29, sp
        str     x19, [sp, #16]
        .cfi_offset 19, -16
        mov     w19, w0
        adrp    x0, .Ltext
        add     x0, x0, :lo12:.Ltext
        bl      puts
        add     w0, w19, #3
        eor     w0, w0, w19, lsl #2
        sub     w0, w0, #7
        bl      other
        add     w0, w0, w19
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore 30
        .cfi_restore 29
        .cfi_restore 19
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   first, .-first

        .type   second, %function
        .globl  second
second:                                 // the same tail
        .cfi_startproc
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        mov     x29, sp
        str     x19, [sp, #16]
        .cfi_offset 19, -16
        mov     w19, w0
        cbz     w0, 1f
        adrp    x0, .Ltext
        add     x0, x0, :lo12:.Ltext
        bl      puts
        add     w0, w19, #3
        eor     w0, w0, w19, lsl #2
        sub     w0, w0, #7
        bl      other
1:      add     w0, w0, w19
        ldr     x19, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_restore 30
        .cfi_restore 29
        .cfi_restore 19
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   second, .-second

        .type   leaf, %function
leaf:                                   // no frame: the link register is live
        .cfi_startproc
        add     w1, w0, #3
        eor     w1, w1, w0, lsl #2
        sub     w1, w1, #7
        orr     w2, w1, w0, lsr #3
        add     w0, w0, #3
        eor     w0, w0, w19, lsl #2
        add     w1, w0, #3
        eor     w1, w1, w0, lsl #2
        sub     w1, w1, #7
        orr     w2, w1, w0, lsr #3
        ret
        .cfi_endproc
        .size   leaf, .-leaf

        .type   switches, %function
        .globl  switches
switches:                               // GCC's jump table of bytes
        .cfi_startproc
        cmp     w0, #3
        b.hi    .Lother
        adrp    x1, .Ltable
        add     x1, x1, :lo12:.Ltable
        ldrb    w1, [x1, w0, uxtw]
        adr     x2, .Lbase
        add     x1, x2, w1, sxtb #2
        br      x1
.Lbase:
.Lone:  mov     w0, #11
        ret
.Ltwo:  mov     w0, #22
        b       leaf
.Lother:
        mov     w0, #0
        ret
        .cfi_endproc
        .size   switches, .-switches

        .type   strange, %function
strange:                                // sealed: nobody knows where this goes
        .cfi_startproc
        adr     x1, 2f
        add     x1, x1, x0, lsl #3
        br      x1
2:      mov     w0, #1
        ret
        mov     w0, #2
        ret
        .cfi_endproc
        .size   strange, .-strange

        .section .rodata
.Ltable:
        .byte   (.Lone - .Lbase) / 4, (.Ltwo - .Lbase) / 4
        .byte   (.Lother - .Lbase) / 4, (.Lone - .Lbase) / 4
        .section .rodata.str1.1, "aMS", %progbits, 1
.Ltext: .string "text"
        .section .note.GNU-stack, "", %progbits
