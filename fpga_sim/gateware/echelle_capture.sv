// How echelle_frame_gate and echelle_framer are put together between converters and a DMA engine.
// Here on one clock; where the converters have their own, an asynchronous FIFO goes before the gate.
`default_nettype none

module echelle_capture #(
    parameter int unsigned DATA_BYTES = 64,
    parameter int unsigned CHANNELS   = 128,
    parameter int unsigned SAMPLES    = 2048,
    parameter bit          COMPLEX    = 1'b0,
    parameter bit          SAMPLE_MAJOR = 1'b1,  // as converters give them
    parameter int unsigned RATE_HZ    = 10_000_000,
    parameter bit          TIME_IS_UNIX = 1'b0,
    parameter int unsigned DEPTH      = 16384
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    input  wire logic [15:0]             stream_number,
    input  wire logic [63:0]             time_ns,
    input  wire logic [8*DATA_BYTES-1:0] adc_data,
    input  wire logic                    adc_valid,
    input  wire logic                    adc_over_range,
    output      logic [8*DATA_BYTES-1:0] m_axis_tdata,
    output      logic                    m_axis_tvalid,
    input  wire logic                    m_axis_tready,
    output      logic                    m_axis_tlast
);

    localparam int unsigned FRAME_BEATS = CHANNELS * SAMPLES * (COMPLEX ? 4 : 2) / DATA_BYTES;

    logic [8*DATA_BYTES-1:0] gated_data;
    logic                    gated_valid;
    logic                    gated_ready;
    logic [31:0]             gated_lost;
    logic                    gated_over_range;

    echelle_frame_gate #(
        .DATA_BYTES(DATA_BYTES),
        .FRAME_BEATS(FRAME_BEATS),
        .DEPTH(DEPTH)
    ) gate (
        .clk(clk),
        .rst(rst),
        .adc_data(adc_data),
        .adc_valid(adc_valid),
        .adc_over_range(adc_over_range),
        .m_axis_tdata(gated_data),
        .m_axis_tvalid(gated_valid),
        .m_axis_tready(gated_ready),
        .m_axis_lost(gated_lost),
        .m_axis_over_range(gated_over_range)
    );

    echelle_framer #(
        .DATA_BYTES(DATA_BYTES),
        .CHANNELS(CHANNELS),
        .SAMPLES(SAMPLES),
        .COMPLEX(COMPLEX),
        .SAMPLE_MAJOR(SAMPLE_MAJOR),
        .RATE_HZ(RATE_HZ),
        .TIME_IS_UNIX(TIME_IS_UNIX)
    ) framer (
        .clk(clk),
        .rst(rst),
        .stream_number(stream_number),
        .time_ns(time_ns),
        .s_axis_tdata(gated_data),
        .s_axis_tvalid(gated_valid),
        .s_axis_tready(gated_ready),
        .s_axis_lost(gated_lost),
        .s_axis_over_range(gated_over_range),
        .m_axis_tdata(m_axis_tdata),
        .m_axis_tvalid(m_axis_tvalid),
        .m_axis_tready(m_axis_tready),
        .m_axis_tlast(m_axis_tlast)
    );

endmodule

`default_nettype wire
