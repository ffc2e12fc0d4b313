#include <assert.h>
#include <math.h>

#include "base/rng.h"
#include "world/sim.h"

static at_ns transfer(const at_sim_net *net, double bytes)
{
    return net->bandwidth > 0 ? AT_SEC(bytes / net->bandwidth) : 0;
}

/* The published comm straggler: a received message is held for |N(0,1)| * sigma. */
static at_ns held(at_sim_net *net)
{
    if (net->delay_sigma <= 0) return 0;
    at_rng rng = at_rng_stream(net->seed, 0, AT_STREAM_NETWORK, net->messages++);
    return AT_SEC(fabs(at_rng_normal(&rng)) * net->delay_sigma);
}

static at_ns pass(at_ns *link_free, at_ns arrives, at_ns takes)
{
    at_ns begins = arrives > *link_free ? arrives : *link_free;
    assert(takes >= 0);
    *link_free = begins + takes;
    return *link_free;
}

at_ns at_sim_net_up(at_sim_net *net, at_ns now, double bytes)
{
    return pass(&net->in_free, now + net->latency, transfer(net, bytes)) + held(net);
}

at_ns at_sim_net_down(at_sim_net *net, at_ns now, double bytes)
{
    return pass(&net->out_free, now, transfer(net, bytes)) + net->latency + held(net);
}
