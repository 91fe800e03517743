#ifndef WEIR_JOB_CAPTURE_H
#define WEIR_JOB_CAPTURE_H

#include <stdint.h>

#if __has_feature(assume_nonnull)
#pragma clang assume_nonnull begin
#endif

/// Takes a job of Swift's default executor; to be run once with `job_capture_run`.
typedef void (*job_capture_receiver)(void *_Nullable context, void *job);

/// From now on the jobs that this thread enqueues on Swift's default executor go to the receiver instead; without a receiver
/// they go to the executor again. Other threads' jobs are never touched.
void job_capture_begin(job_capture_receiver _Nullable receiver, void *_Nullable context);

/// The number of the task that a captured job goes on with, which grows with each new task; 0 for jobs of no task.
uint64_t job_capture_task(void *job);

/// Runs a captured job on this thread.
void job_capture_run(void *job);

#if __has_feature(assume_nonnull)
#pragma clang assume_nonnull end
#endif

#endif
