#include "task/task.h"

double at_task_message(const at_task *task, uint64_t samples)
{
    if (task->sparse) return task->sample_bytes * (double)samples;
    return (double)task->params * sizeof(float);
}
