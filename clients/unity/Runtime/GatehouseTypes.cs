// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;

namespace Gatehouse
{
    /// <summary>
    /// What the player needs: open Url on any device; Code and Qr (an SVG data URI) are there when asked for.
    /// </summary>
    public sealed class GatehouseSession
    {
        public string Gsid { get; internal set; }
        public string Url { get; internal set; }
        public string Code { get; internal set; }
        public string Qr { get; internal set; }
        internal string Location { get; set; }
    }

    public enum GatehouseOutcome
    {
        /// <summary>Signed in.</summary>
        Ok,

        /// <summary>
        /// The player said no, or the service did; Error is a record id that its operators can look up. For a banned
        /// player IsBanned is true: show PublicText, and Until (Unix time, 0 for no end). For guests and platforms, Reason
        /// can be "second_factor": ask for a code and call EnterCodeAsync; "wrong_code": ask again; "no_account": sign in
        /// through the browser; "terms": open Url, then sign in again; "throttled"; "login_error": the key or ticket is not
        /// accepted.
        /// </summary>
        Refused,

        /// <summary>There is no session, or it has ended: sign in.</summary>
        SignedOut,

        /// <summary>The game cancelled.</summary>
        Cancelled,

        /// <summary>The service cannot be reached; Error says how.</summary>
        Unreachable,
    }

    public sealed class GatehouseResult
    {
        public GatehouseOutcome Outcome { get; internal set; }
        public string UserId { get; internal set; } = "";
        public string Nick { get; internal set; } = "";
        public string Jwt { get; internal set; } = "";
        public string Token { get; internal set; } = "";
        public string Error { get; internal set; } = "";
        public string Reason { get; internal set; } = "";
        public string PublicText { get; internal set; } = "";
        public long Until { get; internal set; }

        /// <summary>Where the player accepts the terms.</summary>
        public string Url { get; internal set; } = "";

        /// <summary>For EnterCodeAsync; the methods are in Body.</summary>
        public string RequestId { get; internal set; } = "";

        public bool IsBanned
        {
            get { return Reason == "banned"; }
        }

        /// <summary>Everything the service told, as JSON.</summary>
        public string Body { get; internal set; } = "";

        /// <summary>The tokens stay out of logs.</summary>
        public override string ToString()
        {
            return "GatehouseResult(" + Outcome + ", " + UserId + ", " + Error + ")";
        }
    }

    /// <summary>The answer to a permission check: Allowed has a value for each rule, unless the outcome is not Ok.</summary>
    public sealed class GatehousePermissions
    {
        public GatehouseOutcome Outcome { get; internal set; }
        public IReadOnlyList<bool> Allowed { get; internal set; } = new bool[0];
        public string Error { get; internal set; } = "";
        public string Reason { get; internal set; } = "";
        public string PublicText { get; internal set; } = "";
        public long Until { get; internal set; }
    }

    public sealed class GatehouseOptions
    {
        /// <summary>Null: that of the device. Empty: none, and then there is no JWT.</summary>
        public string Factor { get; set; }

        public bool Code { get; set; }
        public bool Qr { get; set; }

        /// <summary>Further fields of the request.</summary>
        public IDictionary<string, string> More { get; } = new Dictionary<string, string>();

        /// <summary>
        /// Called instead of opening the browser. In WebGL, show a button that calls Application.OpenURL(session.Url):
        /// browsers block a new tab that the player did not click for.
        /// </summary>
        public Action<GatehouseSession> Show { get; set; }

        /// <summary>Seconds; a poll is held for up to 30.</summary>
        public float PollTimeout { get; set; } = 40;

        /// <summary>Seconds without a whole answer until the service counts as unreachable.</summary>
        public float Patience { get; set; } = 90;
    }
}
