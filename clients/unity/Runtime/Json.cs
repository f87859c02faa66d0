// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;

namespace Gatehouse
{
    /// <summary>
    /// JSON without reflection, which stripping would break. Objects are dictionaries, arrays lists, numbers double.
    /// </summary>
    internal sealed class Json
    {
        private const int Deepest = 32;
        private static readonly Regex Number = new Regex(@"\G-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");
        private static readonly Regex Hex = new Regex(@"\G[0-9A-Fa-f]{4}");

        private readonly string text;
        private int at;

        private Json(string text)
        {
            this.text = text;
        }

        /// <summary>The members of one object; empty when the text is anything else.</summary>
        public static Dictionary<string, object> Read(string text)
        {
            try
            {
                var json = new Json(text);
                Dictionary<string, object> found = json.Members(0);
                json.Need(json.Next() == '\0' && json.at == text.Length);
                return found;
            }
            catch (FormatException)
            {
                return new Dictionary<string, object>();
            }
        }

        public static string Text(IReadOnlyDictionary<string, object> members, string name)
        {
            object value;
            return members.TryGetValue(name, out value) && value is string ? (string)value : "";
        }

        public static long Whole(IReadOnlyDictionary<string, object> members, string name)
        {
            object value;
            bool usable = members.TryGetValue(name, out value) && value is double && (double)value >= 0 && (double)value < 1e12;
            return usable ? (long)(double)value : 0;
        }

        public static string Write(object value)
        {
            var members = value as IEnumerable<KeyValuePair<string, object>>;
            if (members != null)
            {
                return "{" + string.Join(",", members.Select(one => Quote(one.Key) + ":" + Write(one.Value))) + "}";
            }
            if (value is string)
            {
                return Quote((string)value);
            }
            var elements = value as IEnumerable;
            if (elements != null)
            {
                return "[" + string.Join(",", elements.Cast<object>().Select(Write)) + "]";
            }
            return ((long)value).ToString(CultureInfo.InvariantCulture);
        }

        private static string Quote(string value)
        {
            var quoted = new StringBuilder("\"");
            foreach (char one in value)
            {
                bool plain = one >= ' ' && one != '"' && one != '\\';
                quoted.Append(plain ? one.ToString() : "\\u" + ((int)one).ToString("x4"));
            }
            return quoted.Append('"').ToString();
        }

        private char Next()
        {
            while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0)
            {
                at++;
            }
            return at < text.Length ? text[at] : '\0';
        }

        private bool Take(char mark)
        {
            bool there = Next() == mark && at < text.Length;
            at += there ? 1 : 0;
            return there;
        }

        private void Need(bool met)
        {
            if (!met)
            {
                throw new FormatException();
            }
        }

        private Dictionary<string, object> Members(int depth)
        {
            var found = new Dictionary<string, object>();
            Need(depth <= Deepest && Take('{'));
            if (Take('}'))
            {
                return found;
            }
            do
            {
                Need(Next() == '"');
                string name = String();
                Need(Take(':'));
                found[name] = Any(depth + 1);
            }
            while (Take(','));
            Need(Take('}'));
            return found;
        }

        private List<object> Elements(int depth)
        {
            var found = new List<object>();
            Need(depth <= Deepest && Take('['));
            if (Take(']'))
            {
                return found;
            }
            do
            {
                found.Add(Any(depth + 1));
            }
            while (Take(','));
            Need(Take(']'));
            return found;
        }

        private object Any(int depth)
        {
            switch (Next())
            {
                case '{':
                    return Members(depth);
                case '[':
                    return Elements(depth);
                case '"':
                    return String();
                case 't':
                    return Word("true", true);
                case 'f':
                    return Word("false", false);
                case 'n':
                    return Word("null", null);
                default:
                    Match number = Number.Match(text, at);
                    Need(number.Success);
                    at += number.Length;
                    return double.Parse(number.Value, CultureInfo.InvariantCulture);
            }
        }

        private object Word(string word, object value)
        {
            Need(string.CompareOrdinal(text, at, word, 0, word.Length) == 0);
            at += word.Length;
            return value;
        }

        private string String()
        {
            var read = new StringBuilder();
            for (at++; at < text.Length && text[at] != '"'; at++)
            {
                Need(text[at] >= ' ');
                read.Append(text[at] == '\\' ? Escaped() : text[at]);
            }
            Need(Take('"'));
            return read.ToString();
        }

        private char Escaped()
        {
            at++;
            Need(at < text.Length);
            if (text[at] == 'u')
            {
                Match hex = Hex.Match(text, at + 1);
                Need(hex.Success);
                at += 4;
                return (char)int.Parse(hex.Value, NumberStyles.HexNumber, CultureInfo.InvariantCulture);
            }
            int which = "\"\\/bfnrt".IndexOf(text[at]);
            Need(which >= 0);
            return "\"\\/\b\f\n\r\t"[which];
        }
    }
}
