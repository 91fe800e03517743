#include "CJobCapture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The runtime's own hooks (swift/Runtime/Concurrency.h), through which every job of the default executor goes. There is no
// other way to own the jobs of tasks that a library starts with `Task { }`, which do not inherit a preferred executor.
#define SWIFT __attribute__((swiftcall))

typedef SWIFT void (*enqueue_original)(void *job);
typedef SWIFT void (*enqueue_hook)(void *job, enqueue_original original);
typedef SWIFT void (*delay_original)(unsigned long long delay, void *job);
typedef SWIFT void (*delay_hook)(unsigned long long delay, void *job, delay_original original);
typedef SWIFT void (*deadline_original)(
    long long seconds, long long nanoseconds, long long tolerance_seconds, long long tolerance_nanoseconds, int clock,
    void *job);
typedef SWIFT void (*deadline_hook)(
    long long seconds, long long nanoseconds, long long tolerance_seconds, long long tolerance_nanoseconds, int clock,
    void *job, deadline_original original);

extern enqueue_hook swift_task_enqueueGlobal_hook;
extern delay_hook swift_task_enqueueGlobalWithDelay_hook;
extern deadline_hook swift_task_enqueueGlobalWithDeadline_hook;

typedef struct {
    void *identity;
    uintptr_t implementation;
} serial_executor;

extern SWIFT void swift_job_run(void *job, serial_executor executor);

extern SWIFT uint64_t swift_task_getJobTaskId(void *job);

static _Thread_local job_capture_receiver receiver_of_thread;
static _Thread_local void *context_of_thread;

static SWIFT void enqueue(void *job, enqueue_original original) {
    if (receiver_of_thread) {
        receiver_of_thread(context_of_thread, job);
    } else {
        original(job);
    }
}

static void refuse_sleep(void) {
    if (!receiver_of_thread) return;
    fputs("a captured task slept by the machine's clock: give it the simulation's\n", stderr);
    abort();
}

static SWIFT void enqueue_with_delay(unsigned long long delay, void *job, delay_original original) {
    refuse_sleep();
    original(delay, job);
}

static SWIFT void enqueue_with_deadline(
    long long seconds, long long nanoseconds, long long tolerance_seconds, long long tolerance_nanoseconds, int clock,
    void *job, deadline_original original) {
    refuse_sleep();
    original(seconds, nanoseconds, tolerance_seconds, tolerance_nanoseconds, clock, job);
}

static void install(void) {
    swift_task_enqueueGlobal_hook = enqueue;
    swift_task_enqueueGlobalWithDelay_hook = enqueue_with_delay;
    swift_task_enqueueGlobalWithDeadline_hook = enqueue_with_deadline;
}

void job_capture_begin(job_capture_receiver receiver, void *context) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    receiver_of_thread = receiver;
    context_of_thread = context;
}

uint64_t job_capture_task(void *job) { return swift_task_getJobTaskId(job); }

void job_capture_run(void *job) {
    // The generic executor.
    swift_job_run(job, (serial_executor){0, 0});
}
