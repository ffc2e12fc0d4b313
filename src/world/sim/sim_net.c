#include <assert.h>

#include "pace/comm_delay.h"
#include "world/sim/sim.h"

static at_ns transfer(const at_sim_net *net, double bytes)
{
    return net->bandwidth > 0 ? AT_SEC(bytes / net->bandwidth) : 0;
}

static at_ns delay(at_sim_net *net)
{
    return at_comm_delay(net->delay_sigma, net->seed, 0, net->messages++);
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
    return pass(&net->in_free, now + net->latency, transfer(net, bytes)) + delay(net);
}

at_ns at_sim_net_down(at_sim_net *net, at_ns now, double bytes)
{
    return pass(&net->out_free, now, transfer(net, bytes)) + net->latency + delay(net);
}
