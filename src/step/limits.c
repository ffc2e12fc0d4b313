#include "step/limits.h"

#include <assert.h>

#include "step/plan.h"

at_end at_limits_reached(const at_hub *hub, at_ns now)
{
    const at_limits *limits = &hub->plan->limits;
    if (limits->steps > 0 && hub->version >= limits->steps) return AT_END_STEPS;
    if (limits->samples > 0 && hub->samples_used >= limits->samples)
        return limits->epochs ? AT_END_EPOCHS : AT_END_SAMPLES;
    if (limits->time > 0 && now - hub->began_at >= limits->time) return AT_END_SECONDS;
    return AT_END_RUNNING;
}

bool at_limits_targets_hit(const at_hub *hub)
{
    uint32_t count = hub->plan->limits.targets, hits = 0;
    assert(count <= AT_TARGETS_MAX);
    for (uint32_t i = 0; i < count; i++) hits += hub->target[i].hit;
    return count > 0 && hits == count;
}

/* A run may be evaluated at its end without having begun. */
at_ns at_hub_elapsed(const at_hub *hub, at_ns at)
{
    if (hub->began_at == AT_NEVER) return hub->elapsed_before;
    return at > hub->began_at ? at - hub->began_at : 0;
}

bool at_limits_evaluated(at_hub *hub, const at_event *evaluated)
{
    assert(evaluated->kind == AT_EV_EVALUATED);
    assert(hub->plan->limits.targets <= AT_TARGETS_MAX);
    const at_limits *limits = &hub->plan->limits;
    at_ns            at = at_hub_elapsed(hub, evaluated->as.evaluated.at);
    for (uint32_t i = 0; i < limits->targets; i++) {
        const at_target *target = &limits->target[i];
        double           value = evaluated->as.evaluated.value[target->metric];
        bool             higher = target->metric != AT_METRIC_LOSS;
        bool             reached = higher ? value >= target->value : value <= target->value;
        if (reached && !hub->target[i].hit)
            hub->target[i] = (at_target_hit){true, evaluated->as.evaluated.step, at};
    }
    return at_limits_targets_hit(hub);
}
