/* Marks for `refrain memory run`: which part of a run is recorded. C and C++:

       #include <refrain.h>

       refrain_memory_off();   nothing is recorded from here on, of any thread of this process
       refrain_memory_on();    and from here on it is again

   Recording is on at first, unless the run was started with `refrain memory run --off`. Both cost next to nothing without
   Refrain: a call of a function that does nothing. No library is needed.

   Fortran: `call refrain_memory_on()`. One object must have been made of this file: cc -c -x c refrain.h -o refrain.o */
#ifndef REFRAIN_H
#define REFRAIN_H

#ifdef __cplusplus
extern "C" {
#endif

/* The mark is an instruction that does nothing, with a number in it that no compiler would choose. */
#if defined(__x86_64__)
#define REFRAIN_MARK(last) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x52, 0x46, 0x4e, " last : : : "memory")
#else
#define REFRAIN_MARK(last) ((void)0)
#endif

/* Code that `refrain memory cc` made is not looked at: it tells. */
#if defined(__SANITIZE_THREAD__)
#define REFRAIN_TELLS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define REFRAIN_TELLS
#endif
#endif
#ifdef REFRAIN_TELLS
extern void refrain_memory_switch(int on) __attribute__((weak));
#define REFRAIN_TELL(on) ((void)(refrain_memory_switch ? refrain_memory_switch(on) : (void)0))
#else
#define REFRAIN_TELL(on) ((void)0)
#endif

__attribute__((weak, noinline)) void refrain_memory_on(void) { REFRAIN_MARK("0x31"); REFRAIN_TELL(1); }
__attribute__((weak, noinline)) void refrain_memory_off(void) { REFRAIN_MARK("0x30"); REFRAIN_TELL(0); }

/* As Fortran compilers call them. */
__attribute__((weak, noinline)) void refrain_memory_on_(void) { REFRAIN_MARK("0x31"); REFRAIN_TELL(1); }
__attribute__((weak, noinline)) void refrain_memory_off_(void) { REFRAIN_MARK("0x30"); REFRAIN_TELL(0); }

#undef REFRAIN_MARK
#undef REFRAIN_TELL
#undef REFRAIN_TELLS

#ifdef __cplusplus
}
#endif

#endif
