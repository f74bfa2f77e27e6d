// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/network/packet_network.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "sim/events/simulation.h"

namespace orrery::packet_network_test {
namespace {

using namespace literals;

// 1 GB/s carries a byte per nanosecond.
constexpr Picoseconds kByte = 1000;

PacketOptions packets(std::uint32_t mtu, std::uint32_t header = 0, std::uint32_t buffer = 0) {
  PacketOptions options;
  options.mtu = mtu;
  options.header = header;
  options.buffer = buffer;
  return options;
}

TEST(PacketNetwork, AMessageOnOneLinkTakesItsBytesAndTheLatency) {
  PacketNetwork network({{1_GBps, 500}}, {{{0}, 10'000, 7000}}, packets(1000));
  EXPECT_EQ(network.run()[0], 7000 + 10'000 * kByte + 500);
}

TEST(PacketNetwork, EveryPacketCarriesItsHeader) {
  PacketNetwork network({{1_GBps, 0}}, {{{0}, 2500, 0}}, packets(1000, 100));
  EXPECT_EQ(network.run()[0], (2500 + 3 * 100) * kByte);
}

TEST(PacketNetwork, SwitchesCutThrough) {
  // The header is passed on as soon as it is there: one header per switch, not one packet.
  PacketNetwork network({{1_GBps, 500}, {1_GBps, 500}, {1_GBps, 500}}, {{{0, 1, 2}, 1000, 0}},
                        packets(1000, 100));
  EXPECT_EQ(network.run()[0], 1100 * kByte + 3 * 500 + 2 * 100 * kByte);
}

TEST(PacketNetwork, AFasterLinkDoesNotRunDry) {
  // The second link takes 500 ns for the packet, so it starts 500 ns after the first byte came.
  PacketNetwork network({{1_GBps, 0}, {2_GBps, 0}}, {{{0, 1}, 1000, 0}}, packets(1000));
  EXPECT_EQ(network.run()[0], 1000 * kByte);
}

TEST(PacketNetwork, FlowsTakeTurns) {
  // Two packets each: a b a b.
  PacketNetwork network({{1_GBps, 0}}, {{{0}, 2000, 0}, {{0}, 2000, 0}}, packets(1000));
  const std::vector<Picoseconds> ends = network.run();
  EXPECT_EQ(ends[0], 3000 * kByte);
  EXPECT_EQ(ends[1], 4000 * kByte);
}

TEST(PacketNetwork, AFlowThatIsSlowElsewhereLeavesItsTurnsToOthers) {
  // Flow 0 goes on over a link of a tenth of the rate. Of link 0 it needs as much, and flow 1 has
  // the rest: 90,000 bytes at 0.9 GB/s.
  PacketNetwork network({{1_GBps, 100}, {0.1_GBps, 100}}, {{{0, 1}, 20'000, 0}, {{0}, 90'000, 0}},
                        packets(100));
  const std::vector<Picoseconds> ends = network.run();
  EXPECT_NEAR(static_cast<double>(ends[1]), 100'000.0 * kByte, 1000.0 * kByte);
  EXPECT_NEAR(static_cast<double>(ends[0]), 200'000.0 * kByte, 1000.0 * kByte);
}

TEST(PacketNetwork, WithoutRoomForARoundTripALinkStandsIdle) {
  // One packet of 100 ns at a time, its credit back after 1000 + 100 + 1000 ns.
  const std::vector<PacketLink> links = {{1_GBps, 1'000'000}, {1_GBps, 0}};
  PacketNetwork one(links, {{{0, 1}, 1000, 0}}, packets(100, 0, 1));
  EXPECT_EQ(one.run()[0], (9 * 2100 + 1000 + 100) * kByte);
  PacketNetwork enough(links, {{{0, 1}, 1000, 0}}, packets(100));
  EXPECT_EQ(enough.run()[0], (1000 + 1000) * kByte);
}

TEST(PacketNetwork, RunsOnTheSystemCKernelToo) {
  const std::vector<PacketLink> links = {{1_GBps, 300}, {0.7_GBps, 200}};
  const std::vector<PacketFlow> flows = {{{0, 1}, 30'000, 0}, {{1}, 20'000, 500}};
  PacketNetwork bare(links, flows);
  PacketNetwork hosted(links, flows);
  const std::vector<Picoseconds> ends = bare.run();
  Simulation::instance().run(hosted);
  EXPECT_EQ(hosted.end(0), ends[0]);
  EXPECT_EQ(hosted.end(1), ends[1]);
}

TEST(PacketNetwork, RejectsWhatCannotBeSent) {
  const std::vector<PacketLink> links = {{1_GBps, 0}, {1_GBps, 0}};
  const auto make = [&links](const PacketFlow& flow) { PacketNetwork network(links, {flow}); };
  EXPECT_THROW(make({{}, 10, 0}), std::logic_error);
  EXPECT_THROW(make({{2}, 10, 0}), std::logic_error);
  EXPECT_THROW(make({{0, 1, 0}, 10, 0}), std::logic_error);
  EXPECT_THROW(make({{0}, 0, 0}), std::logic_error);
  EXPECT_THROW(PacketNetwork({{BytesPerSecond(0.0), 0}}, {}), std::logic_error);
  EXPECT_THROW(PacketNetwork(links, {}, packets(0)), std::logic_error);
}

}  // namespace
}  // namespace orrery::packet_network_test
