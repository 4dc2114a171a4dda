// Stands between converters, which cannot wait, and echelle_framer, which must. A first-in,
// first-out memory of DEPTH beats; when it cannot take a whole frame, that frame is dropped whole,
// and counted, and the number goes with the next frame that gets in. So a frame that leaves is
// never torn, and every lost one is known.
//
// adc_*   one beat whenever adc_valid is 1. A frame is FRAME_BEATS of them, counted from the reset.
// m_axis  to echelle_framer's s_axis, and m_axis_lost to its s_axis_lost.
//
// DEPTH must be at least FRAME_BEATS, for a frame is let in when all of it has room; twice as much
// bridges a pause of a frame. The memory is read into a register, as block memory is; for large
// frames put the card's own memory in its place and keep the rule.
`default_nettype none

module echelle_frame_gate #(
    parameter int unsigned DATA_BYTES  = 64,
    parameter int unsigned FRAME_BEATS = 8192,
    parameter int unsigned DEPTH       = 16384  // beats, a power of two
) (
    input  wire logic                    clk,
    input  wire logic                    rst,

    input  wire logic [8*DATA_BYTES-1:0] adc_data,
    input  wire logic                    adc_valid,
    input  wire logic                    adc_over_range,

    output      logic [8*DATA_BYTES-1:0] m_axis_tdata,
    output      logic                    m_axis_tvalid,
    input  wire logic                    m_axis_tready,
    output      logic [31:0]             m_axis_lost,  // frames before this one, on its first beat
    output      logic                    m_axis_over_range
);

    localparam int unsigned ADDRESS_BITS = $clog2(DEPTH);
    localparam int unsigned BEAT_BITS    = $clog2(FRAME_BEATS + 1);

    generate
        if (DEPTH < FRAME_BEATS || (DEPTH & (DEPTH - 1)) != 0) begin : g_depth
            $error("DEPTH must be a power of two and at least FRAME_BEATS");
        end
    endgenerate

    typedef struct packed {
        logic [31:0]             lost;
        logic                    over_range;
        logic [8*DATA_BYTES-1:0] data;
    } entry_t;

    entry_t memory[DEPTH];

    logic [ADDRESS_BITS:0] written;  // beats, modulo twice the depth
    logic [ADDRESS_BITS:0] taken;
    logic [BEAT_BITS-1:0]  beat;     // of the frame that comes in
    logic                  admitted;
    logic [31:0]           lost;     // frames since the last one let in

    wire logic [ADDRESS_BITS:0] used = written - taken;
    wire logic first = beat == '0;
    wire logic last  = beat == BEAT_BITS'(FRAME_BEATS - 1);
    wire logic room  = used <= (ADDRESS_BITS+1)'(DEPTH - FRAME_BEATS);
    wire logic take  = first ? room : admitted;  // decided once for a frame

    entry_t head;  // the oldest beat, out of the memory
    wire logic fetch = used != '0 && (!m_axis_tvalid || m_axis_tready);

    always_comb begin
        m_axis_tdata      = head.data;
        m_axis_lost       = head.lost;
        m_axis_over_range = head.over_range;
    end

    always_ff @(posedge clk) begin
        if (adc_valid) begin
            beat <= last ? '0 : beat + 1'b1;
            if (first) begin
                admitted <= room;
            end
            if (take) begin
                memory[written[ADDRESS_BITS-1:0]] <= '{lost: first ? lost : 32'h0,
                                                      over_range: adc_over_range,
                                                      data: adc_data};
                written <= written + 1'b1;
                if (first) begin
                    lost <= '0;
                end
            end else if (last) begin
                lost <= lost + 32'd1;
            end
        end
        if (fetch) begin
            head          <= memory[taken[ADDRESS_BITS-1:0]];
            taken         <= taken + 1'b1;
            m_axis_tvalid <= 1'b1;
        end else if (m_axis_tready) begin
            m_axis_tvalid <= 1'b0;
        end
        if (rst) begin
            beat     <= '0;
            admitted <= 1'b0;
            lost     <= '0;
            written  <= '0;
            taken    <= '0;
            m_axis_tvalid <= 1'b0;
        end
    end

endmodule

`default_nettype wire
