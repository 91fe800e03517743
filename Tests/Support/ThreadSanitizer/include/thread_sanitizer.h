/// Shows the thread sanitizer how threads wait for each other where it cannot see it; see `deploy/test-long`.
///
/// It knows pthreads and atomics in code that it was built into. The threads, mutexes and conditions of C11, which librdkafka
/// uses, go to glibc past it, and the slow path of Swift's `Mutex` is in a library that was built without it. What is defined
/// here comes before those, in a program that links this target: C11's calls become pthreads', and the slow path tells the
/// sanitizer what it has done. In a build without the sanitizer there is nothing here.
#ifndef THREAD_SANITIZER_H
#define THREAD_SANITIZER_H
#endif
