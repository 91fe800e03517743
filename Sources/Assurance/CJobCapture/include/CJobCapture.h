#ifndef WEIR_JOB_CAPTURE_H
#define WEIR_JOB_CAPTURE_H

#include <stdint.h>

#if __has_feature(assume_nonnull)
#pragma clang assume_nonnull begin
#endif

/// Takes a job of Swift's default executor; to be run once with `job_capture_run`.
typedef void (*job_capture_receiver)(void *_Nullable context, void *job);

/// Sends the jobs that this thread enqueues on Swift's default executor to the receiver; without a receiver
/// they go to the executor again. Jobs of other threads are not affected.
void job_capture_begin(job_capture_receiver _Nullable receiver, void *_Nullable context);

/// The number of the task of a captured job, which grows with each new task; 0 for a job without a task.
uint64_t job_capture_task(void *job);

/// Runs a captured job on this thread.
void job_capture_run(void *job);

#if __has_feature(assume_nonnull)
#pragma clang assume_nonnull end
#endif

#endif
