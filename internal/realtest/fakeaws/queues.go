package fakeaws

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

// Queue is a standard queue.
type Queue struct {
	Name string
	// Visibility is how long a message that was received is hidden, Retention how long one
	// is kept.
	Visibility, Retention time.Duration
	// After MaxReceive receipts a message goes to Dead; 0: never.
	MaxReceive int
	Dead       string
	// Twice delivers every message two times, as a standard queue may.
	Twice bool
}

// Message is one that is in a queue.
type Message struct {
	ID, Handle, Body string
	Attributes       map[string]Attribute
	Sent             time.Time
	// Visible is when it can be received.
	Visible  time.Time
	Received int
	first    time.Time
}

// Attribute is a message attribute.
type Attribute struct {
	DataType, StringValue string
	BinaryValue           []byte
}

// Limits of SQS.
const (
	maxDelay   = 900
	maxBody    = 256 << 10
	maxEntries = 10
	maxHidden  = 43200
)

// Queues are the queues of the account.
type Queues struct {
	mu      sync.Mutex
	queues  map[string]*queueState
	counter int
}

type queueState struct {
	Queue
	messages []*Message
}

// Add makes a queue.
func (q *Queues) Add(list ...Queue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queues == nil {
		q.queues = map[string]*queueState{}
	}
	for _, one := range list {
		q.queues[one.Name] = &queueState{Queue: one}
	}
}

// ARN is the name of a queue in policies and events.
func ARN(queue string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + queue }

// URL is the address of a queue.
func (a *AWS) URL(queue string) string { return a.Endpoint("SQS") + "/" + Account + "/" + queue }

// Messages are the messages of a queue, hidden ones and delayed ones too.
func (q *Queues) Messages(name string) []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.queues[name]
	if s == nil {
		return nil
	}
	s.forget(time.Now())
	out := make([]Message, len(s.messages))
	for i, m := range s.messages {
		out[i] = *m
	}
	return out
}

func (s *queueState) forget(now time.Time) {
	s.messages = slices.DeleteFunc(s.messages, func(m *Message) bool { return s.Retention > 0 && now.Sub(m.Sent) > s.Retention })
}

// Send puts a message into a queue.
func (q *Queues) Send(name, body string, delay time.Duration, attributes map[string]Attribute) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.queues[name]
	switch {
	case s == nil:
		return "", noQueue(name)
	case body == "":
		return "", ec2fake.Error("MissingParameter", "The request must contain the parameter MessageBody.")
	case len(body) > maxBody:
		return "", ec2fake.Error("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", maxBody)
	case delay < 0 || delay > maxDelay*time.Second:
		return "", ec2fake.Error("InvalidParameterValue", "Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= %d.", delay/time.Second, maxDelay)
	}
	q.counter++
	id, now := fmt.Sprintf("00000000-0000-4000-8000-%012x", q.counter), time.Now()
	for range map[bool]int{false: 1, true: 2}[s.Twice] {
		s.messages = append(s.messages, &Message{ID: id, Body: body, Attributes: attributes, Sent: now, Visible: now.Add(delay)})
	}
	return id, nil
}

// Receive takes at most n messages that are visible; they are hidden for the visibility
// time of the queue. Messages that were received too often move away.
func (q *Queues) Receive(name string, n int) []Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, now := q.queues[name], time.Now()
	if s == nil {
		return nil
	}
	s.forget(now)
	if dead := q.queues[s.Dead]; dead != nil && s.MaxReceive > 0 {
		s.messages = slices.DeleteFunc(s.messages, func(m *Message) bool {
			gone := m.Received >= s.MaxReceive && !m.Visible.After(now)
			if gone {
				dead.messages = append(dead.messages, &Message{ID: m.ID, Body: m.Body, Attributes: m.Attributes, Sent: m.Sent, Visible: now})
			}
			return gone
		})
	}
	var out []Message
	for _, m := range s.messages {
		if len(out) == n {
			break
		}
		if m.Visible.After(now) {
			continue
		}
		q.counter++
		m.Handle, m.Visible, m.Received = fmt.Sprintf("handle-%d", q.counter), now.Add(s.Visibility), m.Received+1
		if m.first.IsZero() {
			m.first = now
		}
		out = append(out, *m)
	}
	return out
}

// Delete removes a message that was received.
func (q *Queues) Delete(name, handle string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.queues[name]
	if s == nil {
		return noQueue(name)
	}
	s.messages = slices.DeleteFunc(s.messages, func(m *Message) bool { return m.Handle != "" && m.Handle == handle })
	return nil
}

// Hide changes how long a message that was received stays hidden, from now; nil is the
// visibility time of the queue.
func (q *Queues) Hide(name, handle string, seconds *int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.queues[name]
	if s == nil {
		return noQueue(name)
	}
	hidden := s.Visibility
	if seconds != nil {
		hidden = time.Duration(*seconds) * time.Second
	}
	if hidden < 0 || hidden > maxHidden*time.Second {
		return ec2fake.Error("InvalidParameterValue", "Value %d for parameter VisibilityTimeout is invalid.", *seconds)
	}
	now := time.Now()
	for _, m := range s.messages {
		if m.Handle != "" && m.Handle == handle {
			if !m.Visible.After(now) {
				return ec2fake.Error("com.amazonaws.sqs#MessageNotInflight", "The message is not in flight.")
			}
			m.Visible = now.Add(hidden)
			return nil
		}
	}
	return ec2fake.Error("com.amazonaws.sqs#ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
}

func noQueue(name string) error {
	return ec2fake.Error("com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist: %s", name)
}

// Event is a batch of messages as Lambda gives it to a function.
func Event(queue string, batch []Message) ([]byte, error) {
	type attribute struct {
		StringValue string `json:"stringValue,omitempty"`
		BinaryValue []byte `json:"binaryValue,omitempty"`
		DataType    string `json:"dataType"`
	}
	records := make([]map[string]any, 0, len(batch))
	for _, m := range batch {
		attributes := map[string]attribute{}
		for k, v := range m.Attributes {
			attributes[k] = attribute{v.StringValue, v.BinaryValue, v.DataType}
		}
		records = append(records, map[string]any{
			"messageId": m.ID, "receiptHandle": m.Handle, "body": m.Body, "md5OfBody": md5Of(m.Body), "messageAttributes": attributes,
			"attributes": map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.Received), "SentTimestamp": fmt.Sprint(m.Sent.UnixMilli()),
				"SenderId": "AROAKERF", "ApproximateFirstReceiveTimestamp": fmt.Sprint(m.first.UnixMilli())},
			"eventSource": "aws:sqs", "eventSourceARN": ARN(queue), "awsRegion": Region,
		})
	}
	return json.Marshal(map[string]any{"Records": records})
}

func md5Of(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// entry is one message that is sent.
type entry struct {
	ID                string `json:"Id"`
	MessageBody       string
	DelaySeconds      int64
	MessageAttributes map[string]Attribute
}

func (q *Queues) send(url string, e entry) (map[string]any, error) {
	id, err := q.Send(nameOf(url), e.MessageBody, time.Duration(e.DelaySeconds)*time.Second, e.MessageAttributes)
	if err != nil {
		return nil, err
	}
	return map[string]any{"MessageId": id, "MD5OfMessageBody": md5Of(e.MessageBody)}, nil
}

// nameOf is the queue that a URL addresses.
func nameOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

func (q *Queues) methods() map[string]method {
	type one struct {
		QueueUrl string
		entry
	}
	type batch struct {
		QueueUrl string
		Entries  []entry
	}
	type hideBatch struct {
		QueueUrl string
		Entries  []struct {
			ID                string `json:"Id"`
			ReceiptHandle     string
			VisibilityTimeout *int64
		}
	}
	return map[string]method{
		"AmazonSQS.SendMessage": takes(func(_ context.Context, in *one) (any, error) { return q.send(in.QueueUrl, in.entry) }),
		"AmazonSQS.SendMessageBatch": takes(func(_ context.Context, in *batch) (any, error) {
			seen := map[string]bool{}
			size := 0
			for _, e := range in.Entries {
				if seen[e.ID] || e.ID == "" {
					return nil, ec2fake.Error("com.amazonaws.sqs#BatchEntryIdsNotDistinct", "Id %q repeated.", e.ID)
				}
				seen[e.ID] = true
				size += len(e.MessageBody)
			}
			switch {
			case len(in.Entries) == 0:
				return nil, ec2fake.Error("com.amazonaws.sqs#EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request.")
			case len(in.Entries) > maxEntries:
				return nil, ec2fake.Error("com.amazonaws.sqs#TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(in.Entries))
			case size > maxBody:
				return nil, ec2fake.Error("com.amazonaws.sqs#BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxBody, size)
			}
			done, failed := []map[string]any{}, []map[string]any{}
			for _, e := range in.Entries {
				out, err := q.send(in.QueueUrl, e)
				if err != nil {
					code, message, _ := describe(err)
					if strings.HasSuffix(code, "QueueDoesNotExist") {
						return nil, err
					}
					failed = append(failed, map[string]any{"Id": e.ID, "Code": code, "Message": message, "SenderFault": true})
					continue
				}
				out["Id"] = e.ID
				done = append(done, out)
			}
			return map[string]any{"Successful": done, "Failed": failed}, nil
		}),
		"AmazonSQS.ChangeMessageVisibilityBatch": takes(func(_ context.Context, in *hideBatch) (any, error) {
			if len(in.Entries) == 0 || len(in.Entries) > maxEntries {
				return nil, ec2fake.Error("com.amazonaws.sqs#TooManyEntriesInBatchRequest", "A batch has 1 to 10 entries. You have sent %d.", len(in.Entries))
			}
			done, failed := []map[string]any{}, []map[string]any{}
			for _, e := range in.Entries {
				if err := q.Hide(nameOf(in.QueueUrl), e.ReceiptHandle, e.VisibilityTimeout); err != nil {
					code, message, _ := describe(err)
					failed = append(failed, map[string]any{"Id": e.ID, "Code": code, "Message": message, "SenderFault": true})
					continue
				}
				done = append(done, map[string]any{"Id": e.ID})
			}
			return map[string]any{"Successful": done, "Failed": failed}, nil
		}),
	}
}

// Waiting are the bodies of a queue's messages, the one that is visible first coming first.
func (q *Queues) Waiting(name string) []string {
	list := q.Messages(name)
	slices.SortStableFunc(list, func(x, y Message) int { return cmp.Compare(x.Visible.UnixNano(), y.Visible.UnixNano()) })
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = m.Body
	}
	return out
}
