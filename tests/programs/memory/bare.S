# A program without a library, whose instructions are known: a call, a loop, strings, an atomic operation, a vector, blocks
# without any access. It ends with code 7.
    .text
    .globl _start
_start:
    xor %eax, %eax              # 2 bytes
    mov $3, %ecx                # 5
1:  addl $1, counter(%rip)      # 7, a load and a store
    dec %ecx                    # 2
    jne 1b                      # 2
    call two                    # 5, a store
    lea source(%rip), %rsi      # 7
    lea target(%rip), %rdi      # 7
    mov $5, %ecx                # 5
    rep movsb                   # 2, five loads and stores
    rep movsb                   # 2, none: nothing is left
    mov $2, %ecx                # 5
2:  loop 2b                     # 2, twice
    movups source(%rip), %xmm0  # 7, a load of 16 bytes
    lock incl counter(%rip)     # 7, an update
    mov $60, %eax               # 5
    mov $7, %edi                # 5
    syscall                     # 2
two:
    push %rax                   # 1, a store
    pop %rax                    # 1, a load
    ret                         # 1, a load
    .data
    .balign 16
counter: .long 0, 0, 0, 0
source: .quad 1, 2
target: .quad 0, 0
    .section .note.GNU-stack,"",@progbits
