/// Reports synchronization to the thread sanitizer that it does not intercept; see `deploy/test-long`.
///
/// It intercepts pthreads, and atomics in code that was compiled with it. It misses the threads, mutexes and conditions of C11,
/// which librdkafka uses, and the slow path of Swift's `Mutex`, whose library was compiled without it. In a program that links
/// this target, C11's calls become those of pthreads, and the slow path reports to the sanitizer. Without the sanitizer this
/// target is empty.
#ifndef THREAD_SANITIZER_H
#define THREAD_SANITIZER_H
#endif
