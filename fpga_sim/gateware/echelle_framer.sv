// Makes frames of docs/capture-cards.md out of a stream of samples: a header, the samples, a
// trailer with their checksum; one AXI4-Stream packet each, as a DMA engine (XDMA's C2H stream, for
// one) takes them. A reference: plain SystemVerilog, one clock, no vendor's cells.
//
// s_axis  samples in the order that LAYOUT says, without a gap; TLAST isn't needed. With the first
//         beat of a frame s_axis_lost says how many whole frames were lost before it: who cannot
//         stop its converters drops whole frames (echelle_frame_gate does).
// m_axis  the packets. A beat is DATA_BYTES, the first byte in bits 7:0. TVALID never waits for
//         TREADY, and does not fall before it, as long as s_axis keeps the same rule.
//
// The header goes out when the first beat of a frame is there; samples pass without being stored;
// the header takes two clocks and 64 / DATA_BYTES beats, the trailer as many again. So samples
// must leave some 4 + 128 / DATA_BYTES clocks in each frame, which a frame of some kilobytes has
// when the bus is a per mille faster than the converters.
//
// payload_bytes must be a multiple of 64. stream_number has to change whenever this module was
// reset: software counts it, or a register that a reset leaves alone.
`default_nettype none

module echelle_framer #(
    parameter int unsigned DATA_BYTES = 64,   // of a beat: 8, 16, 32 or 64
    parameter int unsigned CHANNELS   = 128,
    parameter int unsigned SAMPLES    = 2048,  // of each channel in a frame
    parameter bit          COMPLEX    = 1'b0,  // ci16: re, then im
    parameter bit          SAMPLE_MAJOR = 1'b0,
    parameter int unsigned RATE_HZ    = 10_000_000,  // 0: software has to know
    parameter bit          TIME_IS_UNIX = 1'b0
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    input  wire logic [15:0]             stream_number,
    input  wire logic [63:0]             time_ns,  // taken with a frame's first beat

    input  wire logic [8*DATA_BYTES-1:0] s_axis_tdata,
    input  wire logic                    s_axis_tvalid,
    output      logic                    s_axis_tready,
    input  wire logic [31:0]             s_axis_lost,        // with a frame's first beat
    input  wire logic                    s_axis_over_range,  // of any sample in this beat

    output      logic [8*DATA_BYTES-1:0] m_axis_tdata,
    output      logic                    m_axis_tvalid,
    input  wire logic                    m_axis_tready,
    output      logic                    m_axis_tlast
);

    localparam int unsigned PAYLOAD_BYTES = CHANNELS * SAMPLES * (COMPLEX ? 4 : 2);
    localparam int unsigned PAYLOAD_BEATS = PAYLOAD_BYTES / DATA_BYTES;
    localparam int unsigned EDGE_BEATS    = 64 / DATA_BYTES;  // of the header, of the trailer
    localparam int unsigned BEAT_BITS     = $clog2(PAYLOAD_BEATS + 1);

    localparam logic [31:0] HEADER_MAGIC  = 32'h4648_4345;  // "ECHF", first byte first
    localparam logic [31:0] TRAILER_MAGIC = 32'h5448_4345;  // "ECHT"

    generate
        if (PAYLOAD_BYTES % 64 != 0) begin : g_payload
            $error("a frame's samples must be a multiple of 64 bytes");
        end
        if (DATA_BYTES != 8 && DATA_BYTES != 16 && DATA_BYTES != 32 && DATA_BYTES != 64)
        begin : g_data
            $error("DATA_BYTES must be 8, 16, 32 or 64");
        end
    endgenerate

    // ---- IEEE CRC-32, reflected, least significant bit first: the same as zlib's

    function automatic logic [31:0] crc_of_beat(input logic [31:0] so_far,
                                                input logic [8*DATA_BYTES-1:0] data);
        logic [31:0] crc;
        crc = so_far;
        for (int i = 0; i < 8 * int'(DATA_BYTES); i++) begin
            crc = {1'b0, crc[31:1]} ^ ((crc[0] ^ data[i]) ? 32'hEDB8_8320 : 32'h0);
        end
        return crc;
    endfunction

    function automatic logic [31:0] crc_of_edge(input logic [479:0] bytes);
        logic [31:0] crc;
        crc = 32'hFFFF_FFFF;
        for (int i = 0; i < 480; i++) begin
            crc = {1'b0, crc[31:1]} ^ ((crc[0] ^ bytes[i]) ? 32'hEDB8_8320 : 32'h0);
        end
        return ~crc;
    endfunction

    // ---- state

    typedef enum logic [2:0] {
        WAIT,     // for a frame's first beat
        SEAL,     // the header's checksum
        HEADER,
        PAYLOAD,
        CLOSE,    // the trailer's checksum
        TRAILER
    } state_t;

    state_t               state;
    logic [BEAT_BITS-1:0] beat;      // within header, payload or trailer
    logic [511:0]         edge_out;  // header or trailer, the next beat in the low bits
    logic [31:0]          data_crc;
    logic                 over_range;
    logic [63:0]          sequence_number;  // of the frame that comes, or is under way
    logic [63:0]          sample_index;

    // Lost frames have their numbers too.
    wire logic [63:0] sequence_now = sequence_number + {32'h0, s_axis_lost};
    wire logic [63:0] sample_now   = sample_index + {32'h0, s_axis_lost} * SAMPLES;

    wire logic [31:0] header_flags = {28'h0, TIME_IS_UNIX, 1'b0, s_axis_lost != 32'h0, 1'b1};

    wire logic [479:0] header_bytes = {
        32'h0,                                // 56 zero
        time_ns,                              // 48
        sample_now,                           // 40
        sequence_now,                         // 32
        RATE_HZ,                              // 28
        PAYLOAD_BYTES,                        // 24
        SAMPLES,                              // 20
        CHANNELS,                             // 16
        SAMPLE_MAJOR ? 8'd2 : 8'd1,           // 15 layout
        COMPLEX ? 8'd2 : 8'd1,                // 14 format
        stream_number,                        // 12
        header_flags,                         //  8
        16'd64,                               //  6 header_bytes
        16'h0100,                             //  4 version
        HEADER_MAGIC                          //  0
    };

    wire logic [479:0] trailer_bytes = {
        320'h0,                               // 20 zero
        {29'h0, over_range, 2'b00},           // 16 flags
        sequence_number,                      //  8
        ~data_crc,                            //  4
        TRAILER_MAGIC                         //  0
    };

    wire logic is_edge   = state == HEADER || state == TRAILER;
    wire logic last_edge = beat == BEAT_BITS'(EDGE_BEATS - 1);
    wire logic moves     = m_axis_tvalid && m_axis_tready;

    always_comb begin
        m_axis_tdata  = is_edge ? edge_out[8*DATA_BYTES-1:0] : s_axis_tdata;
        m_axis_tvalid = is_edge || (state == PAYLOAD && s_axis_tvalid);
        m_axis_tlast  = state == TRAILER && last_edge;
        s_axis_tready = state == PAYLOAD && m_axis_tready;
    end

    always_ff @(posedge clk) begin
        case (state)
            WAIT: begin
                beat       <= '0;
                data_crc   <= 32'hFFFF_FFFF;
                over_range <= 1'b0;
                if (s_axis_tvalid) begin
                    edge_out        <= {32'h0, header_bytes};
                    sequence_number <= sequence_now;
                    sample_index    <= sample_now;
                    state           <= SEAL;
                end
            end
            SEAL: begin
                edge_out[511:480] <= crc_of_edge(edge_out[479:0]);
                state             <= HEADER;
            end
            HEADER: if (moves) begin
                edge_out <= edge_out >> (8 * DATA_BYTES);
                beat     <= last_edge ? '0 : beat + 1'b1;
                state    <= last_edge ? PAYLOAD : HEADER;
            end
            PAYLOAD: if (moves) begin
                data_crc   <= crc_of_beat(data_crc, s_axis_tdata);
                over_range <= over_range || s_axis_over_range;
                beat       <= beat + 1'b1;
                if (beat == BEAT_BITS'(PAYLOAD_BEATS - 1)) begin
                    beat  <= '0;
                    state <= CLOSE;
                end
            end
            CLOSE: begin
                // In one step: both checksums are there.
                edge_out <= {crc_of_edge(trailer_bytes), trailer_bytes};
                state    <= TRAILER;
            end
            TRAILER: if (moves) begin
                edge_out <= edge_out >> (8 * DATA_BYTES);
                beat     <= last_edge ? '0 : beat + 1'b1;
                if (last_edge) begin
                    sequence_number <= sequence_number + 64'd1;
                    sample_index    <= sample_index + 64'(SAMPLES);
                    state           <= WAIT;
                end
            end
            default: state <= WAIT;
        endcase
        if (rst) begin
            state           <= WAIT;
            beat            <= '0;
            sequence_number <= '0;
            sample_index    <= '0;
        end
    end

endmodule

`default_nettype wire
