package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// answerTimeout is how long an answer of DynamoDB is waited for; it takes milliseconds.
const answerTimeout = 5 * time.Second

// API are the methods of the SDK's client that are used.
type API interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// DynamoDB is a Table on DynamoDB.
type DynamoDB struct {
	api   API
	table string
}

// NewDynamoDB makes a Table of a DynamoDB table with the string keys pk and sk. The
// client must not retry by itself (see Options): the ledger does, and knows what a lost
// answer means.
func NewDynamoDB(api API, table string) *DynamoDB { return &DynamoDB{api: api, table: table} }

// Options sets a client up for NewDynamoDB.
func Options(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// ID implements Table.
func (d *DynamoDB) ID(ctx context.Context) (string, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	out, err := d.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &d.table})
	if err != nil {
		return "", d.classify("describe table", err)
	}
	if out.Table == nil || aws.ToString(out.Table.TableId) == "" {
		return "", fmt.Errorf("describe table %s: the answer has no table id", d.table)
	}
	return *out.Table.TableId, nil
}

// Get implements Table.
func (d *DynamoDB) Get(ctx context.Context, key Key) (Item, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	out, err := d.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.table, Key: keyOf(key), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, d.classify("get "+key.String(), err)
	}
	if len(out.Item) == 0 {
		return nil, nil
	}
	return decodeItem(out.Item)
}

// Query implements Table.
func (d *DynamoDB) Query(ctx context.Context, pk, after string) ([]Item, string, error) {
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	in := &dynamodb.QueryInput{
		TableName: &d.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#n0 = :v0"),
		ExpressionAttributeNames:  map[string]string{"#n0": attrPK},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v0": encode(S(pk))},
	}
	if after != "" {
		in.ExclusiveStartKey = keyOf(Key{pk, after})
	}
	out, err := d.api.Query(ctx, in)
	if err != nil {
		return nil, "", d.classify("query "+pk, err)
	}
	items := make([]Item, len(out.Items))
	for i, raw := range out.Items {
		if items[i], err = decodeItem(raw); err != nil {
			return nil, "", err
		}
	}
	next := ""
	if len(out.LastEvaluatedKey) > 0 {
		last, err := decodeItem(out.LastEvaluatedKey)
		if err != nil {
			return nil, "", err
		}
		next = last.Key().SK
	}
	return items, next, nil
}

// Write implements Table.
func (d *DynamoDB) Write(ctx context.Context, w Write) (Item, error) {
	if err := checkWrite(w); err != nil {
		return nil, err
	}
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	var e expression
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	var err error
	switch {
	case w.check():
		return nil, fmt.Errorf("a check of %s alone is a read: use Get", w.Key)
	case w.Delete:
		_, err = d.api.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &d.table, Key: keyOf(w.Key), ReturnValuesOnConditionCheckFailure: old,
			ConditionExpression: e.when(w.When), ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		})
	case w.Put != nil:
		_, err = d.api.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &d.table, Item: encodeItem(w.Put), ReturnValuesOnConditionCheckFailure: old,
			ConditionExpression: e.when(w.When), ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		})
		if err == nil {
			return w.Put.clone(), nil
		}
	default:
		var out *dynamodb.UpdateItemOutput
		out, err = d.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &d.table, Key: keyOf(w.Key), ReturnValuesOnConditionCheckFailure: old, ReturnValues: types.ReturnValueAllNew,
			UpdateExpression: e.update(w), ConditionExpression: e.when(w.When),
			ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		})
		if err == nil {
			return decodeItem(out.Attributes)
		}
	}
	if err == nil {
		return nil, nil
	}
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		was, err := decodeOld(failed.Item)
		if err != nil {
			return nil, err
		}
		return nil, &ConditionError{Key: w.Key, Old: was}
	}
	return nil, d.classify("write "+w.Key.String(), err)
}

// Transact implements Table.
func (d *DynamoDB) Transact(ctx context.Context, token string, ws []Write) error {
	if err := checkWrites(ws); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, answerTimeout)
	defer done()
	actions := make([]types.TransactWriteItem, len(ws))
	for i, w := range ws {
		actions[i] = d.action(w)
	}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: actions}
	if token != "" {
		in.ClientRequestToken = &token
	}
	_, err := d.api.TransactWriteItems(ctx, in)
	if err == nil {
		return nil
	}
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || len(cancelled.CancellationReasons) != len(ws) {
		return d.classify("write a transaction that starts with "+ws[0].Key.String(), err)
	}
	reasons := make([]Reason, len(ws))
	for i, r := range cancelled.CancellationReasons {
		was, err := decodeOld(r.Item)
		if err != nil {
			return err
		}
		code := aws.ToString(r.Code)
		switch code {
		case "", ReasonNone:
			code = ReasonNone
		case "ProvisionedThroughputExceeded":
			code = ReasonThrottled
		case ReasonCondition, ReasonConflict, ReasonThrottled:
		default:
			if tooLarge(aws.ToString(r.Message)) {
				return fmt.Errorf("%w: %s: %s", ErrTooLarge, ws[i].Key, aws.ToString(r.Message))
			}
			return fmt.Errorf("write %s in a transaction: %s: %s", ws[i].Key, code, aws.ToString(r.Message))
		}
		reasons[i] = Reason{Key: ws[i].Key, Code: code, Old: was}
	}
	return &CanceledError{Reasons: reasons}
}

func (d *DynamoDB) action(w Write) types.TransactWriteItem {
	var e expression
	const old = types.ReturnValuesOnConditionCheckFailureAllOld
	switch {
	case w.check():
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &d.table, Key: keyOf(w.Key), ReturnValuesOnConditionCheckFailure: old,
			ConditionExpression: e.when(w.When), ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		}}
	case w.Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &d.table, Key: keyOf(w.Key), ReturnValuesOnConditionCheckFailure: old,
			ConditionExpression: e.when(w.When), ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		}}
	case w.Put != nil:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &d.table, Item: encodeItem(w.Put), ReturnValuesOnConditionCheckFailure: old,
			ConditionExpression: e.when(w.When), ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		}}
	default:
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &d.table, Key: keyOf(w.Key), ReturnValuesOnConditionCheckFailure: old,
			UpdateExpression: e.update(w), ConditionExpression: e.when(w.When),
			ExpressionAttributeNames: e.nameMap(), ExpressionAttributeValues: e.valueMap(),
		}}
	}
}

// classify tells apart what the ledger treats in different ways. What is not an answer of
// DynamoDB, or is its own mistake, leaves open whether the write was applied.
func (d *DynamoDB) classify(what string, err error) error {
	said, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return fmt.Errorf("%s: %w: %w", what, ErrUnknown, err)
	}
	var kind error
	switch code := said.ErrorCode(); code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "LimitExceededException":
		kind = ErrThrottled
	case "TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException":
		kind = ErrConflict
	case "ResourceNotFoundException":
		kind = ErrNoTable
	case "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException":
		kind = ErrUnauthorized
	case "ValidationException":
		if !tooLarge(said.ErrorMessage()) {
			return fmt.Errorf("%s in table %s: %w", what, d.table, err)
		}
		kind = ErrTooLarge
	default:
		if said.ErrorFault() != smithy.FaultServer && !strings.HasPrefix(code, "Internal") && code != "ServiceUnavailable" {
			return fmt.Errorf("%s in table %s: %w", what, d.table, err)
		}
		kind = ErrUnknown
	}
	return fmt.Errorf("%s in table %s: %w: %w", what, d.table, kind, err)
}

func tooLarge(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "size has exceeded") || strings.Contains(m, "size to update has exceeded") || strings.Contains(m, "exceeded the maximum allowed size")
}
